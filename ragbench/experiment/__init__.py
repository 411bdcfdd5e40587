"""Running experiments: plans, arms, processes, designs."""
