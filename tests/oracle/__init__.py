"""A slow, literal transcription of the message-passing equations, against which the library is tested."""
