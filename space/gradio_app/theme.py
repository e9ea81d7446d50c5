"""Gradio's own parts in our colours, with the system's fonts: nothing is fetched from elsewhere."""

from typing import Final

import gradio as gr

FONTS: Final = ["system-ui", "-apple-system", "Segoe UI", "Helvetica Neue", "Arial", "sans-serif"]
MONOSPACED: Final = ["ui-monospace", "SFMono-Regular", "Menlo", "Consolas", "monospace"]
TEAL: Final = gr.themes.Color(
    *("#f0f7f6", "#dcedeb", "#bcdcd9", "#93c5c1", "#61a7a2", "#3a8884", "#1f6f6b", "#195a57", "#154947",
      "#113a38", "#0a2625"), name="accent",
)  # fmt: skip
COLOURS: Final = {
    "var(--ground)": "body_background_fill",
    "var(--ink)": "body_text_color button_secondary_text_color checkbox_label_text_color "
    "checkbox_label_text_color_selected",
    "var(--muted)": "body_text_color_subdued block_label_text_color block_title_text_color "
    "block_info_text_color input_placeholder_color",
    "var(--raised)": "background_fill_primary input_background_fill checkbox_background_color "
    "checkbox_label_background_fill button_secondary_background_fill",
    "var(--sunken)": "background_fill_secondary",
    "var(--lines)": "border_color_primary block_border_color table_border_color",
    "var(--control-line)": "input_border_color checkbox_border_color checkbox_label_border_color "
    "button_secondary_border_color",
    "var(--accent)": "border_color_accent input_border_color_focus checkbox_background_color_selected "
    "checkbox_border_color_selected link_text_color",
    "var(--accent-soft)": "checkbox_label_background_fill_hover checkbox_label_background_fill_selected "
    "button_secondary_background_fill_hover color_accent_soft",
    "var(--accent-strong)": "button_primary_background_fill",
    "var(--accent-stronger)": "button_primary_background_fill_hover",
    "#ffffff": "button_primary_text_color",
    "transparent": "block_background_fill panel_background_fill",
}
"""Gradio's variables by the variable of ``static/tokens.css``, so that both sides stay the same."""
SIZES: Final = {
    "0px": "block_border_width block_padding",
    "none": "block_shadow input_shadow checkbox_label_shadow",
    "600": "block_label_text_weight block_title_text_weight",
    "1px": "input_border_width checkbox_label_border_width",
    "12px": "block_title_text_size layout_gap form_gap_width",
    "14px": "input_text_size",
    "8px": "input_radius",
    "8px 10px": "input_padding",
    "7px 12px": "checkbox_label_padding",
}


def build_theme() -> gr.themes.Base:
    """The theme; light and dark are the same variables."""
    theme = gr.themes.Base(primary_hue=TEAL, neutral_hue="slate", font=FONTS, font_mono=MONOSPACED)
    values = {name: value for value, names in (COLOURS | SIZES).items() for name in names.split()}
    dark = {f"{name}_dark": value for name, value in values.items() if hasattr(theme, f"{name}_dark")}
    return theme.set(**dark, **values)
