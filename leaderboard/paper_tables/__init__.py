"""The paper's tables computed from records, beside what the paper prints, with every difference explained."""
