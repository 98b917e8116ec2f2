"""What `kubectl get` and `kubectl describe` print for people, read back as far as it goes. Pure.

`texts.py` is the face: it takes lines and gives objects, Events and what was left out. What a
table or a description does not say is absent from what is read, never a default.
"""
