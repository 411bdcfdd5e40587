"""The search for better parameters, and its confirmation on topics it has not seen."""
