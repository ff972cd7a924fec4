// Load the page again after the next cycle of a watch, such as `pytest --eval-watch`.

// A page on disk may not read the files beside it, but it may show a picture: one that is as wide as the number of the last cycle.
const CYCLE_SECONDS = 1;

function followCycles(shown) {
  const picture = new Image();
  picture.onload = () => {
    if (picture.naturalWidth > shown) location.reload();
    else setTimeout(followCycles, CYCLE_SECONDS * 1000, shown);
  };
  picture.src = `${location.pathname.split("/").pop()}.svg?${Date.now()}`; // without it, nobody watches any more
}
followCycles(Number(document.body.dataset.cycle));
