"""How the weight updates of replicas scale, and how the mean's error falls with their samples."""
