export function signs(walk) {
  throw new Error('implement signs');
}

export function distance(walk) {
  throw new Error('implement distance');
}

export function isLoop(walk) {
  throw new Error('implement isLoop');
}
