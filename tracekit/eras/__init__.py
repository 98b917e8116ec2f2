"""What changed in which Kubernetes version: one table of data, resolved once per replay."""
