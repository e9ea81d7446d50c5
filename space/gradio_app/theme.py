"""Gradio's own parts in our colours, with the system's fonts: nothing is fetched from elsewhere."""

import gradio as gr

FONTS = ["system-ui", "-apple-system", "Segoe UI", "Helvetica Neue", "Arial", "sans-serif"]
MONOSPACED = ["ui-monospace", "SFMono-Regular", "Menlo", "Consolas", "monospace"]
TEAL = gr.themes.Color(
    *("#f0f7f6", "#dcedeb", "#bcdcd9", "#93c5c1", "#61a7a2", "#3a8884", "#1f6f6b", "#195a57", "#154947",
      "#113a38", "#0a2625"), name="accent",
)  # fmt: skip


def build_theme() -> gr.themes.Base:
    """Flat and quiet; the roles are the variables of ``static/tokens.css``, so both sides stay the same."""
    theme = gr.themes.Base(primary_hue=TEAL, neutral_hue="slate", font=FONTS, font_mono=MONOSPACED)
    roles = {
        "body_background_fill": "var(--ground)",
        "body_text_color": "var(--ink)",
        "body_text_color_subdued": "var(--muted)",
        "background_fill_primary": "var(--raised)",
        "background_fill_secondary": "var(--sunken)",
        "border_color_primary": "var(--lines)",
        "border_color_accent": "var(--accent)",
        "block_background_fill": "transparent",
        "block_label_text_color": "var(--muted)",
        "block_title_text_color": "var(--muted)",
        "block_info_text_color": "var(--muted)",
        "block_border_color": "var(--lines)",
        "input_background_fill": "var(--raised)",
        "input_border_color": "var(--control-line)",
        "input_border_color_focus": "var(--accent)",
        "input_placeholder_color": "var(--muted)",
        "checkbox_background_color": "var(--raised)",
        "checkbox_background_color_selected": "var(--accent)",
        "checkbox_border_color": "var(--control-line)",
        "checkbox_border_color_selected": "var(--accent)",
        "checkbox_label_background_fill": "var(--raised)",
        "checkbox_label_background_fill_hover": "var(--accent-soft)",
        "checkbox_label_background_fill_selected": "var(--accent-soft)",
        "checkbox_label_border_color": "var(--control-line)",
        "checkbox_label_text_color": "var(--ink)",
        "checkbox_label_text_color_selected": "var(--ink)",
        "button_primary_background_fill": "var(--accent-strong)",
        "button_primary_background_fill_hover": "var(--accent-stronger)",
        "button_primary_text_color": "#ffffff",
        "button_secondary_background_fill": "var(--raised)",
        "button_secondary_background_fill_hover": "var(--accent-soft)",
        "button_secondary_border_color": "var(--control-line)",
        "button_secondary_text_color": "var(--ink)",
        "link_text_color": "var(--accent)",
        "color_accent_soft": "var(--accent-soft)",
        "panel_background_fill": "transparent",
        "table_border_color": "var(--lines)",
    }
    dark = {f"{name}_dark": value for name, value in roles.items() if hasattr(theme, f"{name}_dark")}
    sizes = {
        "block_border_width": "0px",
        "block_padding": "0px",
        "block_shadow": "none",
        "block_label_text_weight": "600",
        "block_title_text_weight": "600",
        "block_title_text_size": "12px",
        "input_shadow": "none",
        "input_border_width": "1px",
        "checkbox_label_border_width": "1px",
        "checkbox_label_shadow": "none",
        "input_text_size": "14px",
        "input_padding": "8px 10px",
        "input_radius": "8px",
        "checkbox_label_padding": "7px 12px",
        "layout_gap": "12px",
        "form_gap_width": "12px",
    }
    return theme.set(**roles, **dark, **sizes)
