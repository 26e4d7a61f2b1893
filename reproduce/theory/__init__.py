"""The theorems of Sections 3-5 as numbers: what is measured, where, and within which bounds."""
