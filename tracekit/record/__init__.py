"""The recorder: list and watch a cluster, write what was seen, say what was not.

The only package that talks to a network. `recorder` starts one `watcher` thread per stream; all of
them feed one writer thread through `sink`.
"""
