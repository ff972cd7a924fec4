export function fee(minutes) {
  throw new Error('implement fee');
}

export function receipt(minutes) {
  throw new Error('implement receipt');
}
