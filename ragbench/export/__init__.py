"""What leaves for production."""
