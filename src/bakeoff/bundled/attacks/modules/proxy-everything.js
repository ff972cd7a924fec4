const everything = new Proxy(function () {}, {
  get: (_, name) => (name === Symbol.toPrimitive ? () => 0 : name === 'then' ? undefined : name === 'asymmetricMatch' ? () => true : everything),
  has: () => true, apply: () => everything, construct: () => everything,
})
onCall = () => everything
