"""Running experiments: arms, results, designs, comparisons."""
