"""`audit`: the log of a kube-apiserver's requests, and what providers wrap around it."""
