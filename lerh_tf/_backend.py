"""Refuses Keras on another backend than TensorFlow, before anything else imports it."""

import os

_RULE = "lerh_tf needs Keras on TensorFlow: set KERAS_BACKEND=tensorflow before importing keras."

try:
    import keras
except (ImportError, ValueError) as error:
    # The other backend is not installed, or Keras knows none of that name.
    chosen = os.environ.get("KERAS_BACKEND")
    if chosen == "tensorflow":
        raise
    received = f"KERAS_BACKEND={chosen}" if chosen else str(error)
    raise ImportError(f"{_RULE} Received: {received}") from None

if keras.config.backend() != "tensorflow":
    raise ImportError(f"{_RULE} Received: backend={keras.config.backend()}")
