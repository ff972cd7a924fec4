"""Side-by-side benchmarks. Each compares with a peer in one run and prints ratios; absolute times mean little."""
