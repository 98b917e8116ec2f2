"""A model of the cluster around the controllers: API server, garbage collector, kubelet.

Written from upstream, not from the replay: a simulated trace is evidence about the engine only
because the two do not share their ideas of what an API server does.
"""
