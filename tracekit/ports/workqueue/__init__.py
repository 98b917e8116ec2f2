"""client-go's work queue, on a virtual clock."""
