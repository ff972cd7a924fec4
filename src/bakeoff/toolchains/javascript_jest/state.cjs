// Jest keeps its state, and with it every matcher, in well-known places of the global object. There a candidate could take
// hold of it; here the same state lies in an object that only these modules can see. And Jest takes anything for a matcher
// that has a method of the right name, so that a solution could return one that equals everything.
'use strict';
const KEEPS_STATE = /[\\/](?:jest-circus[\\/]build[\\/](?:state|run|eventHandler)|expect[\\/]build[\\/](?:jestMatchersObject|asymmetricMatchers)|expect-utils[\\/]build[\\/]jasmineUtils)\.js$/;
const MATCHERS = /[\\/]asymmetricMatchers\.js$/;
const DUCK = "isA('Function', obj.asymmetricMatch)";
const IS_MATCHER = '\n__hidden.isMatcher = Function.prototype.call.bind(Object.prototype.isPrototypeOf, AsymmetricMatcher.prototype);';
const OTHERS = /\bglobal(?:This)?(?=\[JEST_MATCHERS_OBJECT|, JEST_MATCHERS_OBJECT|\[_types\.STATE_SYM)/g;
const SETTINGS = /\bglobal(?=\[_types\.)/g;

// `hidden` is how such a module comes by that object; a whole Jest has a few settings among its globals, which stay there.
function withHiddenState(source, filename, hidden, settingsToo) {
  const begun = source.replace("'use strict';", () => `'use strict'; const __hidden = ${hidden};`);
  const changed = begun.replace(OTHERS, '__hidden').replace(DUCK, '__hidden.isMatcher(obj)');
  return (settingsToo ? changed.replace(SETTINGS, '__hidden') : changed) + (MATCHERS.test(filename) ? IS_MATCHER : '');
}

module.exports = { KEEPS_STATE, withHiddenState };
