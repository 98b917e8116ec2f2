"""The vocabulary of Kubernetes objects: views, selectors, timestamps. No clock, no I/O."""
