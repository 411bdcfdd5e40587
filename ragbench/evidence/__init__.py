"""One arm against another: statistics and the verdict."""
