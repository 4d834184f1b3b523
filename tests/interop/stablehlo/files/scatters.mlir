"builtin.module"() <{sym_name = "jit_scatters"}> ({
  "func.func"() <{function_type = (tensor<6x4xf64>, tensor<5xi64>, tensor<5x4xf64>) -> (tensor<6x4xf64>, tensor<6x4xf64>, tensor<6x4xf64>, tensor<6x4xf64>, tensor<6x4xf64>, tensor<6x4xf64>, tensor<6x4xf64>), res_attrs = [{jax.result_info = "result[0]"}, {jax.result_info = "result[1]"}, {jax.result_info = "result[2]"}, {jax.result_info = "result[3]"}, {jax.result_info = "result[4]"}, {jax.result_info = "result[5]"}, {jax.result_info = "result[6]"}], sym_name = "main", sym_visibility = "public"}> ({
  ^bb0(%arg0: tensor<6x4xf64>, %arg1: tensor<5xi64>, %arg2: tensor<5x4xf64>):
    %0 = "stablehlo.constant"() <{value = dense<4> : tensor<i64>}> : () -> tensor<i64>
    %1 = "stablehlo.constant"() <{value = dense<1.000000e+00> : tensor<f64>}> : () -> tensor<f64>
    %2 = "stablehlo.constant"() <{value = dense<1> : tensor<i32>}> : () -> tensor<i32>
    %3 = "stablehlo.constant"() <{value = dense<6> : tensor<i64>}> : () -> tensor<i64>
    %4 = "stablehlo.constant"() <{value = dense<[0, 3, 3]> : tensor<3xi64>}> : () -> tensor<3xi64>
    %5 = "stablehlo.constant"() <{value = dense<0> : tensor<i64>}> : () -> tensor<i64>
    %6 = "stablehlo.broadcast_in_dim"(%5) <{broadcast_dimensions = array<i64>}> : (tensor<i64>) -> tensor<5xi64>
    %7 = "stablehlo.compare"(%arg1, %6) <{compare_type = #stablehlo<comparison_type SIGNED>, comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<5xi64>, tensor<5xi64>) -> tensor<5xi1>
    %8 = "stablehlo.broadcast_in_dim"(%3) <{broadcast_dimensions = array<i64>}> : (tensor<i64>) -> tensor<5xi64>
    %9 = "stablehlo.add"(%arg1, %8) : (tensor<5xi64>, tensor<5xi64>) -> tensor<5xi64>
    %10 = "stablehlo.select"(%7, %9, %arg1) : (tensor<5xi1>, tensor<5xi64>, tensor<5xi64>) -> tensor<5xi64>
    %11 = "stablehlo.convert"(%10) : (tensor<5xi64>) -> tensor<5xi32>
    %12 = "stablehlo.broadcast_in_dim"(%11) <{broadcast_dimensions = array<i64: 0>}> : (tensor<5xi32>) -> tensor<5x1xi32>
    %13 = "stablehlo.scatter"(%arg0, %12, %arg2) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
    ^bb0(%arg15: tensor<f64>, %arg16: tensor<f64>):
      %75 = "stablehlo.add"(%arg15, %arg16) : (tensor<f64>, tensor<f64>) -> tensor<f64>
      "stablehlo.return"(%75) : (tensor<f64>) -> ()
    }) : (tensor<6x4xf64>, tensor<5x1xi32>, tensor<5x4xf64>) -> tensor<6x4xf64>
    %14 = "stablehlo.slice"(%arg2) <{limit_indices = array<i64: 1, 4>, start_indices = array<i64: 0, 0>, strides = array<i64: 1, 1>}> : (tensor<5x4xf64>) -> tensor<1x4xf64>
    %15 = "stablehlo.reshape"(%14) : (tensor<1x4xf64>) -> tensor<4xf64>
    %16 = "stablehlo.broadcast_in_dim"(%5) <{broadcast_dimensions = array<i64>}> : (tensor<i64>) -> tensor<5xi64>
    %17 = "stablehlo.compare"(%arg1, %16) <{compare_type = #stablehlo<comparison_type SIGNED>, comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<5xi64>, tensor<5xi64>) -> tensor<5xi1>
    %18 = "stablehlo.broadcast_in_dim"(%3) <{broadcast_dimensions = array<i64>}> : (tensor<i64>) -> tensor<5xi64>
    %19 = "stablehlo.add"(%arg1, %18) : (tensor<5xi64>, tensor<5xi64>) -> tensor<5xi64>
    %20 = "stablehlo.select"(%17, %19, %arg1) : (tensor<5xi1>, tensor<5xi64>, tensor<5xi64>) -> tensor<5xi64>
    %21 = "stablehlo.convert"(%20) : (tensor<5xi64>) -> tensor<5xi32>
    %22 = "stablehlo.broadcast_in_dim"(%21) <{broadcast_dimensions = array<i64: 0>}> : (tensor<5xi32>) -> tensor<5x1xi32>
    %23 = "stablehlo.broadcast_in_dim"(%15) <{broadcast_dimensions = array<i64: 1>}> : (tensor<4xf64>) -> tensor<5x4xf64>
    %24 = "stablehlo.scatter"(%arg0, %22, %23) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
    ^bb0(%arg13: tensor<f64>, %arg14: tensor<f64>):
      "stablehlo.return"(%arg14) : (tensor<f64>) -> ()
    }) : (tensor<6x4xf64>, tensor<5x1xi32>, tensor<5x4xf64>) -> tensor<6x4xf64>
    %25 = "stablehlo.broadcast_in_dim"(%5) <{broadcast_dimensions = array<i64>}> : (tensor<i64>) -> tensor<5xi64>
    %26 = "stablehlo.compare"(%arg1, %25) <{compare_type = #stablehlo<comparison_type SIGNED>, comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<5xi64>, tensor<5xi64>) -> tensor<5xi1>
    %27 = "stablehlo.broadcast_in_dim"(%3) <{broadcast_dimensions = array<i64>}> : (tensor<i64>) -> tensor<5xi64>
    %28 = "stablehlo.add"(%arg1, %27) : (tensor<5xi64>, tensor<5xi64>) -> tensor<5xi64>
    %29 = "stablehlo.select"(%26, %28, %arg1) : (tensor<5xi1>, tensor<5xi64>, tensor<5xi64>) -> tensor<5xi64>
    %30 = "stablehlo.convert"(%29) : (tensor<5xi64>) -> tensor<5xi32>
    %31 = "stablehlo.broadcast_in_dim"(%30) <{broadcast_dimensions = array<i64: 0>}> : (tensor<5xi32>) -> tensor<5x1xi32>
    %32 = "stablehlo.scatter"(%arg0, %31, %arg2) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
    ^bb0(%arg11: tensor<f64>, %arg12: tensor<f64>):
      %74 = "stablehlo.maximum"(%arg11, %arg12) : (tensor<f64>, tensor<f64>) -> tensor<f64>
      "stablehlo.return"(%74) : (tensor<f64>) -> ()
    }) : (tensor<6x4xf64>, tensor<5x1xi32>, tensor<5x4xf64>) -> tensor<6x4xf64>
    %33 = "stablehlo.broadcast_in_dim"(%5) <{broadcast_dimensions = array<i64>}> : (tensor<i64>) -> tensor<5xi64>
    %34 = "stablehlo.compare"(%arg1, %33) <{compare_type = #stablehlo<comparison_type SIGNED>, comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<5xi64>, tensor<5xi64>) -> tensor<5xi1>
    %35 = "stablehlo.broadcast_in_dim"(%3) <{broadcast_dimensions = array<i64>}> : (tensor<i64>) -> tensor<5xi64>
    %36 = "stablehlo.add"(%arg1, %35) : (tensor<5xi64>, tensor<5xi64>) -> tensor<5xi64>
    %37 = "stablehlo.select"(%34, %36, %arg1) : (tensor<5xi1>, tensor<5xi64>, tensor<5xi64>) -> tensor<5xi64>
    %38 = "stablehlo.convert"(%37) : (tensor<5xi64>) -> tensor<5xi32>
    %39 = "stablehlo.broadcast_in_dim"(%38) <{broadcast_dimensions = array<i64: 0>}> : (tensor<5xi32>) -> tensor<5x1xi32>
    %40 = "stablehlo.scatter"(%arg0, %39, %arg2) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
    ^bb0(%arg9: tensor<f64>, %arg10: tensor<f64>):
      %73 = "stablehlo.minimum"(%arg9, %arg10) : (tensor<f64>, tensor<f64>) -> tensor<f64>
      "stablehlo.return"(%73) : (tensor<f64>) -> ()
    }) : (tensor<6x4xf64>, tensor<5x1xi32>, tensor<5x4xf64>) -> tensor<6x4xf64>
    %41 = "stablehlo.broadcast_in_dim"(%5) <{broadcast_dimensions = array<i64>}> : (tensor<i64>) -> tensor<5xi64>
    %42 = "stablehlo.compare"(%arg1, %41) <{compare_type = #stablehlo<comparison_type SIGNED>, comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<5xi64>, tensor<5xi64>) -> tensor<5xi1>
    %43 = "stablehlo.broadcast_in_dim"(%3) <{broadcast_dimensions = array<i64>}> : (tensor<i64>) -> tensor<5xi64>
    %44 = "stablehlo.add"(%arg1, %43) : (tensor<5xi64>, tensor<5xi64>) -> tensor<5xi64>
    %45 = "stablehlo.select"(%42, %44, %arg1) : (tensor<5xi1>, tensor<5xi64>, tensor<5xi64>) -> tensor<5xi64>
    %46 = "stablehlo.convert"(%45) : (tensor<5xi64>) -> tensor<5xi32>
    %47 = "stablehlo.broadcast_in_dim"(%46) <{broadcast_dimensions = array<i64: 0>}> : (tensor<5xi32>) -> tensor<5x1xi32>
    %48 = "stablehlo.scatter"(%arg0, %47, %arg2) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
    ^bb0(%arg7: tensor<f64>, %arg8: tensor<f64>):
      %72 = "stablehlo.multiply"(%arg7, %arg8) : (tensor<f64>, tensor<f64>) -> tensor<f64>
      "stablehlo.return"(%72) : (tensor<f64>) -> ()
    }) : (tensor<6x4xf64>, tensor<5x1xi32>, tensor<5x4xf64>) -> tensor<6x4xf64>
    %49 = "stablehlo.broadcast_in_dim"(%2) <{broadcast_dimensions = array<i64>}> : (tensor<i32>) -> tensor<1xi32>
    %50 = "stablehlo.broadcast_in_dim"(%1) <{broadcast_dimensions = array<i64>}> : (tensor<f64>) -> tensor<6xf64>
    %51 = "stablehlo.scatter"(%arg0, %49, %50) <{indices_are_sorted = true, scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [0], inserted_window_dims = [1], scatter_dims_to_operand_dims = [1]>, unique_indices = true}> ({
    ^bb0(%arg5: tensor<f64>, %arg6: tensor<f64>):
      %71 = "stablehlo.add"(%arg5, %arg6) : (tensor<f64>, tensor<f64>) -> tensor<f64>
      "stablehlo.return"(%71) : (tensor<f64>) -> ()
    }) : (tensor<6x4xf64>, tensor<1xi32>, tensor<6xf64>) -> tensor<6x4xf64>
    %52 = "stablehlo.slice"(%arg1) <{limit_indices = array<i64: 3>, start_indices = array<i64: 0>, strides = array<i64: 1>}> : (tensor<5xi64>) -> tensor<3xi64>
    %53 = "stablehlo.broadcast_in_dim"(%5) <{broadcast_dimensions = array<i64>}> : (tensor<i64>) -> tensor<3xi64>
    %54 = "stablehlo.compare"(%52, %53) <{compare_type = #stablehlo<comparison_type SIGNED>, comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<3xi64>, tensor<3xi64>) -> tensor<3xi1>
    %55 = "stablehlo.broadcast_in_dim"(%3) <{broadcast_dimensions = array<i64>}> : (tensor<i64>) -> tensor<3xi64>
    %56 = "stablehlo.add"(%52, %55) : (tensor<3xi64>, tensor<3xi64>) -> tensor<3xi64>
    %57 = "stablehlo.select"(%54, %56, %52) : (tensor<3xi1>, tensor<3xi64>, tensor<3xi64>) -> tensor<3xi64>
    %58 = "stablehlo.broadcast_in_dim"(%5) <{broadcast_dimensions = array<i64>}> : (tensor<i64>) -> tensor<3xi64>
    %59 = "stablehlo.compare"(%4, %58) <{compare_type = #stablehlo<comparison_type SIGNED>, comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<3xi64>, tensor<3xi64>) -> tensor<3xi1>
    %60 = "stablehlo.broadcast_in_dim"(%0) <{broadcast_dimensions = array<i64>}> : (tensor<i64>) -> tensor<3xi64>
    %61 = "stablehlo.add"(%4, %60) : (tensor<3xi64>, tensor<3xi64>) -> tensor<3xi64>
    %62 = "stablehlo.select"(%59, %61, %4) : (tensor<3xi1>, tensor<3xi64>, tensor<3xi64>) -> tensor<3xi64>
    %63 = "stablehlo.convert"(%57) : (tensor<3xi64>) -> tensor<3xi32>
    %64 = "stablehlo.convert"(%62) : (tensor<3xi64>) -> tensor<3xi32>
    %65 = "stablehlo.broadcast_in_dim"(%63) <{broadcast_dimensions = array<i64: 0>}> : (tensor<3xi32>) -> tensor<3x1xi32>
    %66 = "stablehlo.broadcast_in_dim"(%64) <{broadcast_dimensions = array<i64: 0>}> : (tensor<3xi32>) -> tensor<3x1xi32>
    %67 = "stablehlo.concatenate"(%65, %66) <{dimension = 1 : i64}> : (tensor<3x1xi32>, tensor<3x1xi32>) -> tensor<3x2xi32>
    %68 = "stablehlo.broadcast_in_dim"(%1) <{broadcast_dimensions = array<i64>}> : (tensor<f64>) -> tensor<3xf64>
    %69 = "stablehlo.scatter"(%arg0, %67, %68) <{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0, 1], scatter_dims_to_operand_dims = [0, 1], index_vector_dim = 1>}> ({
    ^bb0(%arg3: tensor<f64>, %arg4: tensor<f64>):
      %70 = "stablehlo.add"(%arg3, %arg4) : (tensor<f64>, tensor<f64>) -> tensor<f64>
      "stablehlo.return"(%70) : (tensor<f64>) -> ()
    }) : (tensor<6x4xf64>, tensor<3x2xi32>, tensor<3xf64>) -> tensor<6x4xf64>
    "func.return"(%13, %24, %32, %40, %48, %51, %69) : (tensor<6x4xf64>, tensor<6x4xf64>, tensor<6x4xf64>, tensor<6x4xf64>, tensor<6x4xf64>, tensor<6x4xf64>, tensor<6x4xf64>) -> ()
  }) : () -> ()
}) {jax.uses_shape_polymorphism = false, mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} : () -> ()
