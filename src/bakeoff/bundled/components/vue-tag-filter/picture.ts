export default {
  recipes: [
    { name: 'Minestrone', tags: ['soup', 'vegan'] },
    { name: 'Pancakes', tags: ['sweet'] },
  ],
};
