// What a whole Jest keeps out of its globals; its own modules alone can load this one instance.
'use strict';
module.exports = Object.create(null);
