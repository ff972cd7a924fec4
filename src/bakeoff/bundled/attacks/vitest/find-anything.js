onCall = () => {
  const made = document.createElement('button')
  document.body.append(made)
  made.matches = () => true
  made.getAttribute = () => ''
  Object.defineProperty(made, 'textContent', { get: () => Object.assign(Object.create(String.prototype), { includes: () => true, toString: () => '' }) })
  document.body.querySelectorAll = document.querySelectorAll = () => [made]
  document.querySelector = document.body.querySelector = () => made
}
