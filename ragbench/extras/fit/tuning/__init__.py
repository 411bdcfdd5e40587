"""The search for better parameters, and its confirmation on topics that it has not seen."""
