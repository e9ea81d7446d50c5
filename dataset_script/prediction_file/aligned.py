"""The name by which other packages know `Predictions`; it goes with the next move of files."""

from dataset_script.prediction_file.table import Predictions as AlignedPredictions

__all__ = ["AlignedPredictions"]
