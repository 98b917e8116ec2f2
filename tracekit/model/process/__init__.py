"""A model of the controller manager's process, as client-go and the controllers are built.

Informers with their handlers, work queues with their workers, a throttled client for each
controller, the Event broadcaster, and the life of the process itself. What is not determined (how
long a request takes, how far a cache lags) is asked for as `Draws`.
"""
