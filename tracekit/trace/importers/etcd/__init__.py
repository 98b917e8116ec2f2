"""`etcd`, `kine`, `etcd-delta`: what the API server's store has kept of the revisions."""
