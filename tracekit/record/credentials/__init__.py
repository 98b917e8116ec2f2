"""Who the recorder is to the API server, and what of that may never be said.

`kubeconfig` is the face: it finds the server and the credentials, the way kubectl does.
"""
