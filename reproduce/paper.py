"""What the paper reports, as data: arXiv 1901.10082 (Entropy 2019, 21(5), 511), Section 6."""

TABLE1 = {
    "sgd": {100: 0.75, 200: 0.80, 300: 0.85, 400: 0.87, 500: 0.87},
    "is": {100: 0.27, 200: 0.45, 300: 0.54, 400: 0.57, 500: 0.65},
    "sgld": {100: 0.72, 200: 0.81, 300: 0.84, 400: 0.86, 500: 0.88},
    "hr": {100: 0.52, 200: 0.64, 300: 0.70, 400: 0.73, 500: 0.76},
}
"""Table 1: held-out accuracy by method and weight update; one run, 1000 test images."""

TABLE2 = {"sgd": 0.0032, "is": 6.2504, "sgld": 7.0599, "hr": 3.3053}
"""Table 2: seconds per weight update by method; the hardware is not stated."""

SECTION_6_1 = {"small_dense": 0.912, "hidden_dense": 0.989}
"""Section 6.1: accuracy of the small network after 5 epochs of SGD; best case of the other."""
