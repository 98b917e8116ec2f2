"""Port of the TTL-after-finished controller: finished Jobs are deleted when their time is up."""
