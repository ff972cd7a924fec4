// A page of sections alone: everything is there once its long tables are.

whole.then(() => { document.documentElement.dataset.ready = "yes"; });
