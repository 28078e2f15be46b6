"""The figures of the lecture notes, each drawn by one call: ``from mercer.display import figures; figures.losses()``.

Each function returns a matplotlib figure. `docs/gallery.md` shows them all; the letters of the notes are explained in
`docs/notes.md`.
"""

from mercer.display.figures.choices import effect_of_C, effect_of_epsilon, effect_of_gamma, near_diagonal, overfitting
from mercer.display.figures.margin_figures import lift, losses, separating_lines, slack, support_vectors
from mercer.display.figures.procedures import coordinate_ascent, pegasos, perceptron, smo

# where the notes have the figure, or describe what it shows
PLACES = {
    "losses": "[SSBD] 15.2, 15.2.3; [M5] Loss function for support vector regression",
    "separating_lines": "[SSBD] 15.1; [D6] Figure 1.1; [M5] Binary classification revisited",
    "support_vectors": "[D6] Figure 4.1; [SSBD] 15.3; [M5] The support vectors",
    "slack": "[SSBD] (15.4); [M5] New problem formulation with soft errors",
    "lift": "[SSBD] 16.1; [CS229] 5.4; [M5] Non-linearly separable data",
    "perceptron": "[SSBD] Remark 15.1, Exercise 15.2",
    "pegasos": "[SSBD] 15.5; [L8] Algorithm 1",
    "coordinate_ascent": "[M5] Coordinate ascent",
    "smo": "[M5] SMO (II), (III); [CS229] 6",
    "effect_of_C": "[M5] A built-in overfitting knob",
    "effect_of_gamma": "[M5] Getting SVMs to work in practice",
    "effect_of_epsilon": "[M5] Effect of ε",
    "overfitting": "[M5] Overfitting symptoms",
    "near_diagonal": "[M5] Mercer's theorem: kernel matrix close to diagonal",
}

__all__ = [
    "coordinate_ascent",
    "effect_of_C",
    "effect_of_epsilon",
    "effect_of_gamma",
    "lift",
    "losses",
    "near_diagonal",
    "overfitting",
    "pegasos",
    "perceptron",
    "separating_lines",
    "slack",
    "smo",
    "support_vectors",
]
