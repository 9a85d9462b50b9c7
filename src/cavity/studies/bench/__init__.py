"""Message passing measured against BinaryNet: time, memory, and time to accuracy. ``cavity bench`` is its front."""
