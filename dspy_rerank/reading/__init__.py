"""Text in and out of a prompt: showing passages, peeling wrappings, reading answers. Pure."""
