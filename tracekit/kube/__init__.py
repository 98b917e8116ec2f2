"""The vocabulary of Kubernetes objects: accessors, references, selectors, timestamps. No clock, no I/O."""
