// A page from `cavity report --serve` asks now and then whether there is a newer one.
const EVERY = 2000;
const mark = by("live");
let known = null;
const look = async () => {
  try {
    const answer = await fetch("/", { method: "HEAD", cache: "no-store" });
    const tag = answer.headers.get("ETag");
    mark.textContent = "live";
    mark.classList.remove("gone");
    if (known !== null && tag !== known) return location.reload();
    known = tag;
  } catch {
    mark.textContent = "the server has ended";
    mark.classList.add("gone");
  }
  setTimeout(look, EVERY);
};
look();
