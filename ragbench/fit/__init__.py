"""All that learns an order from judged topics."""
