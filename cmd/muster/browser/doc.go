// Package browser proves the page in a real browser: Chromium against a real
// fleet of three nodes. It holds nothing but tests, a stage of CI of their own
// (make browser), because they need a browser and minutes.
package browser
