export function signs(walk) {
  return (walk.match(/(.)\1*/g) ?? []).map((part) => `${part.length}${part[0]}`);
}

export function distance(walk) {
  const count = (letter) => walk.split(letter).length - 1;
  return Math.abs(count('N') - count('S')) + Math.abs(count('E') - count('W'));
}

export function isLoop(walk) {
  return distance(walk) === 0;
}
