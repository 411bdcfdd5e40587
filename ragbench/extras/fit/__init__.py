"""What is learned from judged topics: calibration, weights, an order, parameters."""
