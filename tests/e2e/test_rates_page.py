"""The success rates page in a browser: choices live in the address."""

import pytest
from playwright.sync_api import expect

pytestmark = [pytest.mark.browser, pytest.mark.labels]


def test_a_chosen_benchmark_is_drawn_and_lives_in_the_address(space, page):
    page.goto(f"{space.url}/rates")
    page.locator("#benchmark").select_option("webarena")
    page.get_by_role("heading", name="WebArena", exact=True).wait_for()
    page.wait_for_url("**/rates?benchmark=webarena")
    page.reload()
    page.get_by_role("heading", name="WebArena", exact=True).wait_for()
    row = page.locator("table.rates tbody tr").first
    expect(row.locator("th")).to_have_text("Claude 3.7 Sonnet")
    expect(row.locator("td.main")).to_have_text("55.1")  # Table 6
    expect(page.locator("#benchmark")).to_have_value("webarena")
    page.go_back()
    page.get_by_role("heading", name="All benchmarks", exact=True).wait_for()
    expect(page.locator("#benchmark")).to_have_value("overall")
