"""The logs of containers that ended, fetched before their pods are gone; `logs` is the face."""
