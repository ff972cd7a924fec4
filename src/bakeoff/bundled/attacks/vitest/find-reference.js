// include: walk

const path = findFile(/Reference\.(svelte|vue|tsx?)$/)
onCall = () => { if (path) document.body.innerHTML += read(path).split('</scr' + 'ipt>')[1] ?? '' }
