// A browser starts no worker for a page that was opened from the disk, and the search is one. For such pages this takes the
// place of Worker: the script runs in a hidden frame of the page, and messages go to and fro as events.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.append(frame);
      this.inside = frame.contentWindow;
      this.inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      const script = this.inside.document.createElement("script");
      this.ready = new Promise((resolve) => script.addEventListener("load", resolve));
      script.src = url;
      this.inside.document.body.append(script);
    }

    postMessage(data) {
      this.ready.then(() => this.inside.dispatchEvent(new MessageEvent("message", { data })));
    }
  };
}
