// Typeset what pymdownx.arithmatex has marked: \(…\) in a span, \[…\] in a div.
for (const element of document.querySelectorAll(".arithmatex")) {
  katex.render(element.textContent.trim().slice(2, -2), element, {
    displayMode: element.tagName === "DIV",
    throwOnError: false,
  });
}
