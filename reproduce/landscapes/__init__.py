"""Functions on R and R^2 that the theory and Figures 1 and 2 are shown on."""
