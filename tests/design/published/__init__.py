"""Published DynamoDB designs for the planner, one module each, with the keys of their authors."""
