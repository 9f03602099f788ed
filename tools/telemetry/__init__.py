"""What is generated about metrics: the chart's dashboards, and the reference of all metrics."""
