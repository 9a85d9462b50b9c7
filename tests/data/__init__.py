"""Tests of the data room, and the web server that its downloads are tested against."""
