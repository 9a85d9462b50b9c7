"""Pages in a browser."""

from __future__ import annotations


def show(browser, path, width=1280, scheme="light"):
    """Open the page from disk at that width and in that scheme."""
    browser.get_log("browser")
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    size = {"width": width, "height": 844, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    browser.get(path.as_uri())
